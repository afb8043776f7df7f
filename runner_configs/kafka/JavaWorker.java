import java.util.HashMap;
import java.util.Map;
import org.apache.beam.fn.harness.FnHarness;
import org.apache.beam.model.fnexecution.v1.ProvisionApi.GetProvisionInfoRequest;
import org.apache.beam.model.fnexecution.v1.ProvisionApi.ProvisionInfo;
import org.apache.beam.model.fnexecution.v1.ProvisionServiceGrpc;
import org.apache.beam.model.pipeline.v1.Endpoints.ApiServiceDescriptor;
import org.apache.beam.sdk.fn.channel.AddHarnessIdInterceptor;
import org.apache.beam.sdk.fn.channel.ManagedChannelFactory;
import org.apache.beam.vendor.grpc.v1p69p0.com.google.protobuf.util.JsonFormat;
import org.apache.beam.vendor.grpc.v1p69p0.io.grpc.ManagedChannel;

/**
 * One worker process of the Java SDK, as a runner with PROCESS environments starts it: with an id and an address that
 * says all else. Beam's own boot program, which does the same in containers, is not among its Java artifacts.
 */
public class JavaWorker {
  public static void main(String[] arguments) throws Exception {
    Map<String, String> given = new HashMap<>();
    for (String argument : arguments) {
      String[] parts = argument.split("=", 2);
      given.put(parts[0], parts[1]);
    }
    String id = given.get("--id");
    ProvisionInfo info = provisionInfo(id, given.get("--provision_endpoint"));
    Map<String, String> variables = new HashMap<>();
    variables.put("HARNESS_ID", id);
    variables.put("PIPELINE_OPTIONS", JsonFormat.printer().print(info.getPipelineOptions()));
    variables.put("LOGGING_API_SERVICE_DESCRIPTOR", info.getLoggingEndpoint().toString());
    variables.put("CONTROL_API_SERVICE_DESCRIPTOR", info.getControlEndpoint().toString());
    variables.put("RUNNER_CAPABILITIES", String.join(" ", info.getRunnerCapabilitiesList()));
    FnHarness.main(variables::get);
    System.exit(0);
  }

  private static ProvisionInfo provisionInfo(String id, String endpoint) {
    ApiServiceDescriptor address = ApiServiceDescriptor.newBuilder().setUrl(endpoint).build();
    ManagedChannel channel = ManagedChannelFactory.createDefault().forDescriptor(address);
    try {
      return ProvisionServiceGrpc.newBlockingStub(channel)
          .withInterceptors(AddHarnessIdInterceptor.create(id))
          .getProvisionInfo(GetProvisionInfoRequest.getDefaultInstance())
          .getInfo();
    } finally {
      channel.shutdownNow();
    }
  }
}
